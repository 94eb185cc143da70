// Package bystander is for tests of what hostile programs can reach.
package bystander
