// Package failure tells a tracker why an agent did not do its work, and who is to blame.
package failure
