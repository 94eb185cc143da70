// Package caller is the side of those who call a tracker: how they check whom they speak to, and prove who they are.
package caller
