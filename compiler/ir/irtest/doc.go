// Package irtest compares programs with golden files.
package irtest
