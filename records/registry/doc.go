// Package registry lists the available stores. A store added here can be selected by name wherever a store is opened.
package registry
