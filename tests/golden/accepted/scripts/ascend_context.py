# stands for the shipped one
