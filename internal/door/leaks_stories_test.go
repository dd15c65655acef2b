// SPDX-License-Identifier: Apache-2.0

//go:build stories

package door

const abusesOfEach = 100_000
