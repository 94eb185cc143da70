// Package accuracy measures how well cost models rank candidates of tasks that they were not trained on. Measurements
// come from recorded sets and from exported records; the tasks are divided into folds, and models of the other folds
// rank each fold. Begin with Compare.
package accuracy
