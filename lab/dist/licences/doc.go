// Package licences collects the licences of the modules in a program: their texts, and what SPDX calls them. A module
// whose licence it doesn't know is an error, so that nobody releases what nobody has looked at.
package licences
