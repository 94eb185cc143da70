// Package folds has the schedules of a reduction over the channels of small groups that keep several terms of each sum
// in the lanes of vectors, and add those up at the end.
package folds
