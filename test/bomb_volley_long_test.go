// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"testing"

	"github.com/otel-governor/otel-governor/test/bomb"
)

// TestAVolleyOfBombsInZstdLeavesTheNeighborAlone sends what grpc unpacks unseen: 300 bytes on the wire and 4 MB then.
func TestAVolleyOfBombsInZstdLeavesTheNeighborAlone(t *testing.T) {
	besidePacked(t, bomb.Name, "zstd")
}

// TestAVolleyOfAStockClientIsToldWhy sends what a client does that hears what it is told.
func TestAVolleyOfAStockClientIsToldWhy(t *testing.T) { besideVolleys(t, bomb.Bare, "gzip") }
