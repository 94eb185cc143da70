// Package products is the pass that has threads wait for products that warpgroups have begun. Begin with Run.
package products
