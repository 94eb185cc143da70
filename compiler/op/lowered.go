package op

import "slices"

// Lowered lists the operators that have tensor expressions, or are known when the model is read.
var Lowered = slices.Concat(
	convDefs, convTransposeDefs, poolDefs, matmulDefs, normDefs, reduceDefs, softmaxDefs,
	unaryDefs, binaryDefs, otherScalarDefs,
	reshapeDefs, moveDefs, sliceDefs, gatherDefs, knownDefs,
	argDefs, cumulativeDefs, einsumDefs, triluDefs, oneHotDefs, reverseDefs, resizeDefs, gatherNDDefs, scatterDefs, topKDefs,
	dataShapeDefs, signalWindowDefs, dftDefs, gridSampleDefs, maxUnpoolDefs, roiDefs, lpPoolDefs, col2ImDefs, detDefs, deformConvDefs,
	recurrentDefs, quantizeDefs, blockMatMulDefs, scaledConvDefs, hardmaxDefs, lrnDefs, attentionDefs, cacheDefs,
	numbersDefs, loopDefs, selectionDefs, uniqueDefs, suppressionDefs,
)
