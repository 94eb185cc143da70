// Package features is the form in which backends describe candidates to cost models: rows of numbers with named
// columns.
package features
