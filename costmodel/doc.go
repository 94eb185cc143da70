// Package costmodel learns from measurements which candidates of a workload are fast, and predicts it for others. A
// candidate is a row of features, among them its analytic cost. A model is an ensemble of trees (package gbdt) that
// predict by how much a candidate is faster or slower than that cost: without measurements it is the analytic cost.
//
// There is a model for each target, kept as LightGBM's text, so one that LightGBM itself trained on the same features
// can take its place. Begin with Model and Train.
package costmodel
