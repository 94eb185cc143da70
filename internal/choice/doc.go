// Package choice picks the schedules that a model is compiled with.
package choice
