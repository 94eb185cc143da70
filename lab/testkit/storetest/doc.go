// Package storetest helps tests of stores: it makes records and jobs, and reads records back. The contract of all
// stores is tested in package records.
package storetest
