// Package tokens stores the bearer tokens of a farm in a file without secrets: for each token its name, role, expiry
// and hash. Start with File.
package tokens
