// SPDX-License-Identifier: Apache-2.0

//go:build race

package footprint

// The race detector turns the packing of tiny objects off. The rest of the table
// holds, so it is tested with that difference.
func init() { tinyAlone() }
