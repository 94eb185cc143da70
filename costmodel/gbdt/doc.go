// Package gbdt trains ensembles of regression trees by second-order gradient boosting on histograms, and
// stores them as LightGBM text.
//
// Trees grow leaf by leaf: the leaf whose best split lowers the loss most is split next. Splits are found on
// histograms of at most 255 bins per feature. Of two children, only the smaller is counted; the other is the
// difference to their parent. Rows are float32 and sums float64. The result depends only on the data and the
// parameters, not on the number of processors.
//
// Sources: Friedman, "Greedy Function Approximation: A Gradient Boosting Machine" (2001); Chen and Guestrin,
// "XGBoost: A Scalable Tree Boosting System" (KDD 2016) for the second-order gain; Ke et al., "LightGBM: A
// Highly Efficient Gradient Boosting Decision Tree" (NeurIPS 2017) for histograms and leaf-wise growth;
// Burges, "From RankNet to LambdaRank to LambdaMART: An Overview" (2010) for the pairwise loss.
package gbdt
