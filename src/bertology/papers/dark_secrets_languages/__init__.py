"""The open question of Kovaleva et al. (2019): the heads of other languages."""
