// Package accuracy says how well cost models rank candidates of tasks that they were not trained on. Measurements come
// from recorded sets and from exported records; the tasks are divided into folds, and each fold is ranked by models of
// the others.
package accuracy
