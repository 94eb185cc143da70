// Package stat summarises samples: medians, quartiles, and confidence intervals.
package stat
