// Package bystander is a victim for tests of what hostile programs can reach.
package bystander
