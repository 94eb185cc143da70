// Package costfeatures defines the representation of candidates for cost models: rows of numbers with named columns.
package costfeatures
