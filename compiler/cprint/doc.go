// Package cprint prints scalar expressions as C, or a similar language: types, literals, operators, casts, and
// helper functions where C is undefined or differs from the semantics of package expr. A kernel printer supplies a
// Scalars with its own names of variables and buffers. Scalars is the central type.
package cprint
