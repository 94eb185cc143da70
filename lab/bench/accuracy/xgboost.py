"""Trains XGBoost on rows of numpy arrays and scores others, for comparison: xgboost.py IN.npz OUT.npz TREES LEAVES RATE LOSS THREADS."""
import sys

import numpy
import xgboost

data = numpy.load(sys.argv[1])
trees, leaves, rate, loss, threads = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), sys.argv[6], int(sys.argv[7])
train = xgboost.DMatrix(data["rows"], label=data["labels"])
parameters = {
    "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": leaves, "max_depth": 0, "eta": rate, "lambda": 1,
    "subsample": 0.8, "colsample_bytree": 0.5, "nthread": threads, "seed": 0, "base_score": 0,
}
if loss == "order":
    train.set_group(data["groups"])
    train.set_base_margin(data["offsets"])
    parameters.update(objective="rank:pairwise", min_child_weight=1e-2)
else:
    train.set_weight(data["weights"])
    parameters.update(objective="reg:squarederror", min_child_weight=0.002 * float(data["weights"].sum()))
model = xgboost.train(parameters, train, trees)
test = xgboost.DMatrix(data["test"], base_margin=numpy.zeros(len(data["test"])))
numpy.savez(sys.argv[2], gains=model.predict(test, output_margin=True).astype(numpy.float32))
