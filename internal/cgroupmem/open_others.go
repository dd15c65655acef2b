// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroupmem

import "os"

func openFile(name string) (handle, error) { return os.Open(name) }
