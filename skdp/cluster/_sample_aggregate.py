class SampleAggKMeans: pass
