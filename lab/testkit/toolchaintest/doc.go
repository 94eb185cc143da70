// Package toolchaintest helps tests that compile for the machine they run on.
package toolchaintest
