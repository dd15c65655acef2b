// SPDX-License-Identifier: Apache-2.0

//go:build race

package door

func init() { raceDetector = true }
