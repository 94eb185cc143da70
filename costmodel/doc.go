// Package costmodel learns from measurements which candidates of a workload are fast, and says so of candidates that
// were never measured. A candidate is a row of numbers (package features), among them the space's analytic cost. The
// model is an ensemble of trees (package gbdt) that say by how much a candidate is faster or slower than that cost, so
// that it is the analytic cost where nothing was measured, and goes away from it as far as measurements say.
//
// A model is kept for each target as LightGBM's text, so that one that LightGBM itself trained on the same features
// and gains can take its place.
package costmodel
