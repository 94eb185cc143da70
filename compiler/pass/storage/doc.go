// Package storage is the pass that decides where scratch buffers lie that are not in registers: on the stack, or at
// which place of a workspace.
package storage
