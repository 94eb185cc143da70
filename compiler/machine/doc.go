// Package machine lists the instructions that all processors have; the packages below it list those of a family.
package machine
