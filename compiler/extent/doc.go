// Package extent calculates with the extents of axes that each execution of a program chooses.
//
// An Extent is an integer expression of symbols, each with bounds: sums, products, floor divisions, minima and maxima.
// Expressions are in canonical form and interned, so that == compares them. Two extents that are not equal may still
// have the same value in some executions. A Shape is a list of extents.
package extent
