// Package irtest compares programs with those that files have.
package irtest
