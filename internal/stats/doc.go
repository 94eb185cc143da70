// Package stats summarises samples: medians, quartiles, and confidence intervals.
package stats
