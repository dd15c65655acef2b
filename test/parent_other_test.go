// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package test

import "syscall"

// attributes are none where the system has no means to tie a process to its parent.
func attributes() *syscall.SysProcAttr { return nil }
