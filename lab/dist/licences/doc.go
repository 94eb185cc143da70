// Package licences collects the licence texts and SPDX identifiers of the modules in a program. An unknown
// licence is an error, so that every release is reviewed.
package licences
