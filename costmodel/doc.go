// Package costmodel learns from measurements which candidates of a workload are fast, and predicts it for
// others. A candidate is a row of features, including its analytic cost. A model is an ensemble of trees
// (package gbdt) that predicts how much faster or slower a candidate is than that cost; without measurements
// the model is the analytic cost.
//
// There is one model per target, stored as LightGBM text, so that a model trained by LightGBM on the same
// features can replace it. Start with Model and Train.
package costmodel
