package pass

// Comparisons gives the external tests the counter of conditions.
var Comparisons = comparisons
