package graph

// pass changes a graph to another that computes the same.
type pass struct {
	// name is what the pass is called where the graph is shown behind it.
	name string
	run  func(*graph) error
}
