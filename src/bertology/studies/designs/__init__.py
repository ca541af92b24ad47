"""The shapes of experiments that studies of at least two topics share.

`Blocks` cuts a corpus into parts (`Sampled`, `Resampled`, `Tagged` add what they need). `HeadSweep`
disables sets of heads. `Trials` trains models by variant and seed; `TaskTrials` learns a task's
training split and scores the corpus. `Probing` asks probes about words, spans, pairs or sentences.
Fine-tuned models and masks lie in the store's `trained/`, so that a second study that asks for the
same trains nothing, and a kill costs one step.

What fine-tuning does is compared with copies whose weights got noise of the same size of change
(`noise`, `model/weight_noise.py`): what such a copy also shows is not of learning. Attention of any
weights mixes words with their context, so studies of states also read copies of the model with
shuffled weights, a part for each (`shuffled_copies`).
"""
