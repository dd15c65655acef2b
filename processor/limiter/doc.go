// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package limiter is a Collector processor that stands first in a pipeline. It weighs every batch, asks the
// governor for a lease, and holds it until everything after it has answered. A batch that is not admitted
// is answered with an [admission.Error], which receivers turn into what their clients understand.
//
// It decides nothing itself and never changes the data.
package limiter
