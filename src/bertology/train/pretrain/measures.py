"""What a small pre-trained model is judged by."""

from __future__ import annotations

TRIAL_MEASURES = {
    "mlm_loss": "held-out loss of masked tokens (nats)",
    "mlm_accuracy": "masked-token accuracy (%)",
    "pair_accuracy": "minimal pairs (%)",
    "task_score": "fine-tuned score (%)",
}
"""By name, as they are called in figures; losses are in nats, all others are fractions."""
