// Package selection picks the schedules that a model is compiled with.
package selection
