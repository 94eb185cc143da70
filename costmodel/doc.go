// Package costmodel learns from measurements which candidates of a workload are fast, and says so of candidates that were never
// measured. A candidate is a row of numbers (package features); the model is an ensemble of trees (package gbdt), kept for each target
// as LightGBM's text, so that a model that LightGBM itself trained on rows of the same features can take its place.
package costmodel
