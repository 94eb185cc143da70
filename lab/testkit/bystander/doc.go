// Package bystander provides a victim process for tests of sandboxes.
package bystander
