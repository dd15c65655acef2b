// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package governor is a Collector extension that owns what a process has only one of: its memory and its
// places in line. It sizes a pool from the memory limit that the kernel sets, follows that limit while it
// runs, and admits or refuses batches as an [admission.Governor], which the limiter processor and any
// other component find among the host's extensions.
//
// It decides and counts; it does not see the data. Who asks says what a batch weighs.
package governor
