// Package accuracy measures how well cost models rank the candidates of unseen tasks. Measurements come from recorded
// sets or exported records. Cross-validation divides the tasks into folds; models of the other folds rank each fold.
// Start with Compare.
package accuracy
