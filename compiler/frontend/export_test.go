package frontend

// ImportWithin imports a model within a budget of the test's.
var ImportWithin = importWithin

// MaxError is the length in bytes of the longest error.
const MaxError = maxError
