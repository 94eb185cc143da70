// Package cprint prints scalar expressions as C, or a similar language: types, literals, operators, casts, and
// helper functions where C is undefined or differs from the semantics of package expr. Callers implement Scalars to
// name variables and buffers. Start with Scalars.
package cprint
