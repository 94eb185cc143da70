"""Trains XGBoost on rows of numpy arrays and scores others, for comparison: xgboost.py IN.npz OUT.npz TREES LEAVES LOSS THREADS."""
import sys

import numpy
import xgboost

data = numpy.load(sys.argv[1])
trees, leaves, loss, threads = int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], int(sys.argv[6])
train = xgboost.DMatrix(data["rows"], label=data["labels"])
parameters = {
    "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": leaves, "max_depth": 0, "eta": 0.1, "lambda": 1,
    "nthread": threads, "seed": 0,
}
if loss == "order":
    train.set_group(data["groups"])
    parameters.update(objective="rank:pairwise", min_child_weight=1e-2)
else:
    parameters.update(objective="reg:squarederror", min_child_weight=1, base_score=float(data["labels"].mean()))
model = xgboost.train(parameters, train, trees)
numpy.savez(sys.argv[2], scores=model.predict(xgboost.DMatrix(data["test"])).astype(numpy.float32))
