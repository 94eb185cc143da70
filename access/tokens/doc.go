// Package tokens keeps the bearer tokens of a farm in a file that holds no secret: of each token its name, role and
// expiry, and the hash by which it is known again.
package tokens
