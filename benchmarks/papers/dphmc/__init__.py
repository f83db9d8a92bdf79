"""The experiments of Räisä, Koskela and Honkela (2021)."""
