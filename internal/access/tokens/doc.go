// Package tokens keeps the bearer tokens of a farm in a file without secrets: for each token its name, role and
// expiry, and the hash by which it is recognised. Begin with File.
package tokens
